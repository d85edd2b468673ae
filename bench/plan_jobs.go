package main

import (
	"bytes"
	"fmt"
)

// jobSet says what a jobs file declares. Of the jobs that it names first, some
// have changed, and of those that it names last, some are left out; each time
// every eleventh of them is continuous.
type jobSet struct {
	recurring, continuous int
	changed, left         int
}

// zones are those that cron texts are meant in.
var zones = []string{"UTC", "Europe/Prague", "America/Los_Angeles", "Asia/Kathmandu"}

// file is the set as text. No recurring job is due while the benchmark runs, and
// the continuous ones are paused, so that the machine is left to what is measured.
func (s jobSet) file() []byte {
	var b bytes.Buffer
	b.WriteString("[defaults]\nowner = \"organization:bench\"\n")
	leftLoops := s.left / 11
	if s.left > 0 {
		leftLoops = max(1, leftLoops)
	}
	for n := range s.recurring - (s.left - leftLoops) {
		fmt.Fprintf(&b, "\n[jobs.extract_hobo_time_frame.logger-%04d]\ndescription = \"Logger %d\"\n", n, n)
		zone, increment := zones[n%len(zones)], "PT12H"
		if n < s.changed-1 {
			increment = "PT6H"
		}
		if n%2 == 0 {
			fmt.Fprintf(&b, "recurring = { recur_every = \"P%dD\", jitter = \"PT5M\" }\n", 30+n%60)
		} else {
			fmt.Fprintf(&b, "recurring = { cron = \"%d %d 29 2 *\", time_zone = %q }\n", n%60, n%24, zone)
		}
		fmt.Fprintf(&b, `spec = { base_url = "http://127.0.0.1:1", token = "secret://hobolink-demo", organization = "bench", location = "common1", backfill = "P2D", increment = %q, overlap = "PT1H", loggers = [{ serial = "2%07d", station = "Station %d" }] }
`, increment, n, n)
	}
	for n := range s.continuous - leftLoops {
		fmt.Fprintf(&b, "\n[jobs.live_load_influx_v1.location-%04d]\npaused = true\n", n)
		interval := "PT1S"
		if n == 0 && s.changed > 0 {
			interval = "PT2S"
		}
		fmt.Fprintf(&b, `continuous = { interval = %q }
spec = { location = "location-%04d", influx_url = "http://127.0.0.1:8086" }
`, interval, n)
	}
	return b.Bytes()
}
