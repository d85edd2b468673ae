package lines

// DecodeThoroughly reads a message as a whole.
func DecodeThoroughly(rules Rules, body []byte) (*Message, error) {
	d := NewDecoder(rules)
	return &d.message, d.readThoroughly(body)
}
