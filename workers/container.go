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
	addresses, err := net.DefaultResolver.LookupHost(ctx, host)
	if err != nil {
		return host
	}
	for _, address := range addresses {
		names, err := net.DefaultResolver.LookupAddr(ctx, address)
		if err != nil {
			continue
		}
		for _, name := range names {
			// NAME.NETWORK. of Docker; the id alone is in its list of hosts.
			if first, _, _ := strings.Cut(name, "."); !containerID.MatchString(first) {
				return first
			}
		}
	}
	return host
}
