package workflows

// PauseNote is pauseNote, for tests.
var PauseNote = pauseNote
