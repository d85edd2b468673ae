package nats

import (
	"fmt"
	"log/slog"
)

// logger passes the server's messages on.
type logger struct{ to *slog.Logger }

func (l logger) Noticef(format string, v ...any) { l.to.Info(fmt.Sprintf(format, v...)) }
func (l logger) Warnf(format string, v ...any)   { l.to.Warn(fmt.Sprintf(format, v...)) }
func (l logger) Errorf(format string, v ...any)  { l.to.Error(fmt.Sprintf(format, v...)) }
func (l logger) Fatalf(format string, v ...any)  { l.to.Error(fmt.Sprintf(format, v...)) }
func (l logger) Debugf(format string, v ...any)  { l.to.Debug(fmt.Sprintf(format, v...)) }
func (l logger) Tracef(format string, v ...any)  { l.to.Debug(fmt.Sprintf(format, v...)) }
