package overview

// Complete says that all was read last time, besides drift, which takes long. What an
// overview that is not complete does not have may still be so.
func (r *Reader) Complete() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.sources {
		if s.err != nil || s.tried.IsZero() && s.name != driftSource {
			return false
		}
	}
	return true
}

const driftSource = "drift"
