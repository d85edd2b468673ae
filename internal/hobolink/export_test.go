package hobolink

// NewProcess makes a client that shares nothing with the other clients of this
// process, as if it were in a process of its own.
func NewProcess(config Config) (*Client, error) {
	c, err := New(config)
	if err == nil {
		c.limiter = &limiter{limit: defaultLimit, window: defaultWindow}
	}
	return c, err
}

// LedgerKey is the key of a token.
func LedgerKey(host, token string) string { return ledgerKey(host, token) }
