package readmodel

// Complete reports whether all was read last time, besides drift, which takes long: see
// [Reader.DriftKnown]. What an overview that is not complete does not have may still be so.
func (r *Reader) Complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sources {
		if s.name != driftSource && (s.err != nil || s.tried.IsZero()) {
			return false
		}
	}
	return true
}

// DriftKnown reports whether drift was read to its end last time.
func (r *Reader) DriftKnown() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sources {
		if s.name == driftSource {
			return s.err == nil && !s.tried.IsZero()
		}
	}
	return false
}

const driftSource = "drift"
