package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect/v2"
	connectcors "connectrpc.com/cors"
	"github.com/rs/cors"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/internal/localnet"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/server/page"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// preflightFor is how long browsers keep the answer to a preflight, in seconds.
const preflightFor = 7200

// recheck is how often the credentials of a call that goes on are looked at again.
const recheck = 5 * time.Second

// handler is all that the server serves.
func (s *Server) handler() http.Handler {
	calls := http.NewServeMux()
	calls.HandleFunc("GET "+loginPath, s.login)
	calls.HandleFunc("POST "+loginPath, s.login)
	calls.HandleFunc("POST "+logoutPath, s.logout)
	calls.Handle("/", s.authenticated(s.routes()))

	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", live)
	mux.HandleFunc("GET /readyz", s.ready)
	mux.Handle("/", s.ownHost(s.otherOrigins(calls)))
	return s.counted(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "same-origin")
		if r.TLS != nil {
			header.Set("Strict-Transport-Security", "max-age=31536000")
		}
		mux.ServeHTTP(w, limitBody(w, r))
	}))
}

// routes are the API, the page, and the metrics.
func (s *Server) routes() http.Handler {
	jobAPI, shown, measured := s.api.Handler(), s.config.Page(s.clients), metrics.Handler()
	codec := http.MaxBytesHandler(converter.NewPayloadCodecHTTPHandler(s.config.PayloadKeys), maxCodecBody)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch caller, _ := auth.CallerOf(r.Context()); {
		case strings.HasPrefix(r.URL.Path, "/dendra.") || isHealth(r):
			jobAPI.ServeHTTP(w, r)
		case caller.Role < verbs.RoleViewer:
			s.refuse(w, r, noRole(caller))
		case isAPI(r):
			jobAPI.ServeHTTP(w, r)
		case r.URL.Path == "/metrics":
			measured.ServeHTTP(w, r)
		case len(s.config.PayloadKeys.IDs()) > 0 && (r.URL.Path == "/encode" || r.URL.Path == "/decode"):
			w.Header().Set("Cache-Control", "no-store")
			codec.ServeHTTP(w, r)
		default:
			shown.ServeHTTP(w, r)
		}
	})
}

// noRole is the error of a caller who is known and may do nothing.
func noRole(caller auth.Caller) *connect.Error {
	return api.NewError(connect.CodePermissionDenied, jobsv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED, "%s has no role", caller.Name)
}

// isAPI reports whether a request is for the Job API, its health check, or reflection.
func isAPI(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/dendra.") || strings.HasPrefix(r.URL.Path, "/grpc.")
}

// isHealth reports whether a request asks for the health. Whoever balances load has no token.
func isHealth(r *http.Request) bool { return r.URL.Path == "/grpc.health.v1.Health/Check" }

// methodOf is the method of the API that a request calls, nil if there is none such.
func methodOf(r *http.Request) protoreflect.MethodDescriptor {
	service, method, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(service))
	if err != nil {
		return nil
	}
	if described, ok := found.(protoreflect.ServiceDescriptor); ok {
		return described.Methods().ByName(protoreflect.Name(method))
	}
	return nil
}

// isStream reports whether the answer goes on until someone ends it.
func isStream(r *http.Request) bool {
	if method := methodOf(r); method != nil {
		return method.IsStreamingServer()
	}
	return isAPI(r) || r.URL.Path == page.EventsPath
}

// changes reports whether a request calls a method with side effects.
func changes(r *http.Request) bool {
	method := methodOf(r)
	if method == nil || !strings.HasPrefix(r.URL.Path, "/dendra.") {
		return false
	}
	options, ok := method.Options().(*descriptorpb.MethodOptions)
	return !ok || options.GetIdempotencyLevel() != descriptorpb.MethodOptions_NO_SIDE_EFFECTS
}

// ownHost refuses requests that name another host while everybody is let in: a page of
// another site can have its name lead to a loopback address.
func (s *Server) ownHost(next http.Handler) http.Handler {
	if !s.authenticator.Open() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, ok := localnet.Named(r); !ok {
			s.refuse(w, r, api.NewError(connect.CodePermissionDenied, jobsv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
				"without authentication the server answers to localhost and loopback addresses only, not to %.100q", host))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// otherOrigins lets pages of the allowed origins call, and no others. What only reads may
// cost much too: a GET of the API is held to the rule of a POST.
func (s *Server) otherOrigins(next http.Handler) http.Handler {
	protection := http.NewCrossOriginProtection()
	for _, origin := range s.config.AllowOrigins {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			s.config.Logger.Error("an origin is not allowed", "origin", origin, "error", err) // It was checked before.
		}
	}
	protected := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		checked := r
		if isAPI(r) && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			checked = r.Clone(r.Context())
			checked.Method = http.MethodPost
		}
		if protection.Check(checked) != nil {
			s.refuse(w, r, api.NewError(connect.CodePermissionDenied, jobsv1.ErrorReason_ERROR_REASON_PERMISSION_DENIED,
				"a page of another origin sends this request: allow its origin, if that is meant"))
			return
		}
		next.ServeHTTP(w, r)
	})
	if len(s.config.AllowOrigins) == 0 {
		return protected
	}
	return cors.New(cors.Options{
		AllowedOrigins: s.config.AllowOrigins, AllowedMethods: connectcors.AllowedMethods(), ExposedHeaders: connectcors.ExposedHeaders(),
		AllowedHeaders: append(connectcors.AllowedHeaders(), "Authorization", "X-Namespace"), // The Web UI sends the latter.
		MaxAge:         preflightFor,
	}).Handler(protected)
}

// authenticated finds out who calls before anything of the request's body is read, and
// counts what each caller has under way. While a call goes on, its credentials are looked at
// again: it ends with them.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller, failed := s.authenticator.Authenticate(r)
		key := "caller " + caller.Name
		if failed != nil {
			caller, key = auth.Caller{Address: auth.Address(r)}, "address "+auth.Address(r)
		}
		if failed != nil && !isHealth(r) {
			s.turnAway(w, r, caller, failed)
			return
		}
		if failed == nil {
			known(r.Context())
		}
		if !s.calls.begin(key) {
			s.refuse(w, r, api.NewError(connect.CodeResourceExhausted, jobsv1.ErrorReason_ERROR_REASON_TOO_MANY_CALLS,
				"this caller has %d calls under way, which is the limit", s.config.MaxCalls))
			return
		}
		defer s.calls.end(key)
		if api.TakesManyJobs(r.URL.Path) {
			end := s.large.acquire(r.Context(), key)
			if end == nil {
				s.refuse(w, r, api.NewError(connect.CodeResourceExhausted, jobsv1.ErrorReason_ERROR_REASON_TOO_MANY_CALLS,
					"this caller has %d calls with many jobs under way, and none has ended within %s: try again", MaxLargeCalls, TurnTimeout))
				return
			}
			defer end()
		}

		ctx, end := context.WithCancelCause(auth.WithCaller(r.Context(), caller))
		defer end(nil)
		if isStream(r) {
			defer context.AfterFunc(s.stopping, func() { end(context.Cause(s.stopping)) })()
		}
		if !s.authenticator.Open() && !isHealth(r) {
			// A copy, since whoever serves the call may write headers.
			defer s.recheck(r.Clone(r.Context()), caller, end)()
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// recheck ends a call whose caller has lost the role that the call began with. It gives the
// function that ends the checks.
func (s *Server) recheck(r *http.Request, caller auth.Caller, end context.CancelCauseFunc) func() {
	ended := make(chan struct{})
	timer := time.AfterFunc(recheck, func() {
		tick := time.NewTicker(recheck)
		defer tick.Stop()
		for {
			now, failed := s.authenticator.Authenticate(r)
			switch {
			case failed != nil && failed.Code() == connect.CodeUnauthenticated:
				end(failed)
				return
			case failed == nil && now.Role < caller.Role:
				end(auth.Unauthenticated("the role of %s has changed: call again", caller.Name))
				return
			}
			select {
			case <-tick.C:
			case <-ended:
				return
			}
		}
	})
	return func() {
		timer.Stop()
		close(ended)
	}
}

// turnAway answers a request without valid credentials.
func (s *Server) turnAway(w http.ResponseWriter, r *http.Request, caller auth.Caller, failed *connect.Error) {
	if changes(r) {
		s.config.Audit.Refused(caller, r.URL.Path, failed)
	}
	if !isAPI(r) && r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		toLogin(w, r)
		return
	}
	w.Header().Set("WWW-Authenticate", "Bearer")
	s.refuse(w, r, failed)
}

// refuse answers with an error in the protocol of the caller.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err *connect.Error) {
	w.Header().Set("Cache-Control", "no-store")
	if failed := s.errors.Write(w, r, err); failed != nil && !errors.Is(failed, context.Canceled) {
		s.config.Logger.DebugContext(r.Context(), "an error could not be sent", "error", failed)
	}
}
