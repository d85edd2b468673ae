// Package localnet tells near hosts from those across the internet.
package localnet

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"time"
)

// Loopback reports whether a host is localhost or a loopback address. No name is looked up.
func Loopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(host)
	return err == nil && address.Unmap().IsLoopback()
}

// Private reports whether every address of a host is a loopback, private or link-local
// one, also if none is found within two seconds: it cannot be reached then.
func Private(ctx context.Context, host string) bool {
	addresses := []netip.Addr{}
	if address, err := netip.ParseAddr(host); err == nil {
		addresses = append(addresses, address)
	} else {
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		addresses, _ = net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}
	for _, address := range addresses {
		address = address.Unmap()
		if !address.IsLoopback() && !address.IsPrivate() && !address.IsLinkLocalUnicast() {
			return false
		}
	}
	return true
}
