package server

// Waiting counts the calls with many jobs that a caller has under way, and those that wait.
func (s *Server) Waiting(caller string) int {
	s.large.mu.Lock()
	defer s.large.mu.Unlock()
	if own := s.large.callers[caller]; own != nil {
		return own.users
	}
	return 0
}

// Alive asks once whether the server answers itself.
func (s *Server) Alive() bool {
	self := s.self()
	defer self.CloseIdleConnections()
	return s.alive(self)
}
