//go:build !race

package process

// racing says that the race detector is at work, whose memory no limit allows for.
const racing = false
