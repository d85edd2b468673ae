package workers

import (
	"context"
	"net"
	"regexp"
	"strings"
	"time"
)

// containerID is the host name that Docker gives to a container.
var containerID = regexp.MustCompile(`^[0-9a-f]{12}$`)

// nameServer is how long the name server may take.
const nameServer = 2 * time.Second

// containerName is a name that a container has again when it is made anew, if host is the id
// of a container: Docker's name server knows the name for its address. Without one it is host.
func containerName(host string) string {
	if !containerID.MatchString(host) {
		return host
	}
	ctx, cancel := context.WithTimeout(context.Background(), nameServer)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true}
	addresses, err := resolver.LookupNetIP(ctx, "ip4", host)
	if err != nil {
		return host
	}
	for _, address := range addresses {
		// In this form the address is not in the container's list of hosts, which has the id
		// alone: the name server is asked.
		names, err := resolver.LookupAddr(ctx, "::ffff:"+address.Unmap().String())
		if err != nil {
			continue
		}
		for _, name := range names { // NAME.NETWORK.
			if first, _, found := strings.Cut(name, "."); found && serviceName(first) == first {
				return first
			}
		}
	}
	return host
}
