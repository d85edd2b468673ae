package watchdog

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"

	"github.com/wneessen/go-mail"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/wording"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/readmodel/alerts"
)

// EmailConfig says how mail is sent.
type EmailConfig struct {
	Host string
	// Port defaults to 587, and to 465 with TLS from the begin.
	Port int
	// Security is starttls, tls or none. Defaults to starttls.
	Security string
	From     string
	To       []string
	// User and Password log in, unless User is "".
	User     string
	Password string
	// TLS defaults to that of the host with the authorities of the system.
	TLS   *tls.Config
	Retry Retry
}

// Securities of SMTP.
const (
	securityStartTLS = "starttls"
	securityTLS      = "tls"
	securityNone     = "none"
)

// Email is a receiver that sends mail by SMTP.
type Email struct {
	config EmailConfig
	retry  Retry
}

// NewEmail makes a receiver.
func NewEmail(config EmailConfig) (*Email, error) {
	if config.Security == "" {
		config.Security = securityStartTLS
	}
	e := &Email{config, config.Retry.withDefaults()}
	if len(config.To) == 0 {
		return nil, errors.New("a mail needs an address that it goes to")
	}
	if config.User != "" && config.Security == securityNone {
		return nil, errors.New("a password is not sent without TLS: set security to starttls or tls")
	}
	if _, err := e.mail(Message{}); err != nil {
		return nil, err
	}
	_, err := e.client()
	return e, err
}

func (e *Email) client() (*mail.Client, error) {
	options := []mail.Option{mail.WithTimeout(e.retry.Timeout)}
	switch e.config.Security {
	case securityStartTLS:
		options = append(options, mail.WithTLSPortPolicy(mail.TLSMandatory))
	case securityTLS:
		options = append(options, mail.WithSSLPort(false))
	case securityNone:
		options = append(options, mail.WithTLSPortPolicy(mail.NoTLS))
	default:
		return nil, fmt.Errorf("security %q is not one of starttls, tls, none", e.config.Security)
	}
	if e.config.Port != 0 {
		options = append(options, mail.WithPort(e.config.Port))
	}
	if e.config.TLS != nil {
		options = append(options, mail.WithTLSConfig(e.config.TLS))
	}
	if e.config.User != "" {
		options = append(options, mail.WithSMTPAuth(mail.SMTPAuthAutoDiscover), mail.WithUsername(e.config.User), mail.WithPassword(e.config.Password))
	}
	return mail.NewClient(e.config.Host, options...)
}

func (e *Email) mail(m Message) (*mail.Msg, error) {
	msg := mail.NewMsg()
	if err := msg.From(e.config.From); err != nil {
		return nil, fmt.Errorf("from: %q is not an address of mail", e.config.From)
	}
	if err := msg.To(e.config.To...); err != nil {
		return nil, fmt.Errorf("to: %q are not addresses of mail", strings.Join(e.config.To, ", "))
	}
	about := m.Alert
	if len(m.Alerts) > 1 {
		about = m.Text
	}
	msg.Subject(job.Cut(fmt.Sprintf("[%s] %s", m.Phase, about), 200))
	msg.SetMessageIDWithValue(m.ID + "@dendra-jobs")
	msg.SetDate()
	blocks := make([]string, len(m.Alerts))
	for n, alert := range m.Alerts {
		blocks[n] = block(alert, len(m.Alerts) > 1)
	}
	text := strings.Join(blocks, "\n")
	msg.SetBodyString(mail.TypeTextPlain, text)
	return msg, nil
}

// block is the text about an alert, with its name if it is one of several.
func block(n Notice, named bool) string {
	fired := wording.Stamp(n.FireTime)
	text := fmt.Sprintf("%s\n\nIt is so since %s.\n", n.Text, fired)
	if n.Phase == alerts.Cleared && n.ClearTime != nil {
		text = fmt.Sprintf("This has cleared: %s\n\nIt was so from %s to %s.\n", n.Text, fired, wording.Stamp(*n.ClearTime))
	}
	if readmodel.RuleOf(n.Rule) == runEnded {
		text = fmt.Sprintf("%s\n\nIt ended at %s.\n", n.Text, fired)
	}
	if n.Link != "" {
		text += "Link: " + n.Link + "\n"
	}
	if n.Severity != "" {
		text += "Severity: " + n.Severity + "\n"
	}
	if n.Owner != "" {
		text += "Owner: " + n.Owner + "\n"
	}
	if named {
		text = n.Alert + "\n\n" + text
	}
	return text
}

// Send implements [Receiver]. What the server refuses for good is not tried again.
func (e *Email) Send(ctx context.Context, m Message) error {
	return e.retry.do(ctx, func(ctx context.Context) error {
		client, err := e.client()
		if err != nil {
			return finalError{err}
		}
		msg, err := e.mail(m)
		if err != nil {
			return finalError{err}
		}
		err = client.DialAndSendWithContext(ctx, msg)
		var refused *mail.SendError
		if errors.As(err, &refused) && !refused.IsTemp() && refused.ErrorCode() >= 500 {
			return finalError{err}
		}
		return err
	})
}
