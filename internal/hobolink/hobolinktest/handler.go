package hobolinktest

import (
	"crypto/subtle"
	"hash/fnv"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Handler is the server. It is safe for concurrent use.
type Handler struct {
	options   Options
	corrected sync.Map // of correctedKey to float64

	mu          sync.Mutex
	windowStart time.Time
	windowUsed  int
	failures    []Failure
	rows        []extraRow
	count       int64
	log         []Request
}

// logLength is how many requests a handler remembers.
const logLength = 1000

// Request is a request that the handler has answered.
type Request struct {
	At         time.Time // when it came in, by the wall clock
	Loggers    []string
	Start, End time.Time
	Status     int
	Points     int
	Truncated  bool
}

// NewHandler makes a handler; see [Options] for what a zero value means.
func NewHandler(options Options) *Handler {
	return &Handler{options: options.withDefaults()}
}

// Options returns the options of the handler with defaults filled in.
func (h *Handler) Options() Options { return h.options }

// RequestCount is the number of requests answered so far, refused ones included.
func (h *Handler) RequestCount() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

// Requests lists the last 1,000 requests to /v1/data, oldest first.
func (h *Handler) Requests() []Request {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.log)
}

// Observations lists what a logger has measured from one time to another, both
// included, never after the handler's Now: in the order of the API, by time and
// then by series. Rows added with [Handler.AddRow] are not among them.
func (h *Handler) Observations(logger string, from, to time.Time) []Observation {
	return slices.Collect(h.observations(logger, from, to))
}

func (h *Handler) observations(logger string, from, to time.Time) iter.Seq[Observation] {
	return func(yield func(Observation) bool) {
		if !slices.Contains(h.options.Loggers, logger) {
			return
		}
		if now := h.options.Now(); to.After(now) {
			to = now
		}
		if from.Before(Since) {
			from = Since
		}
		step := h.options.Interval
		base := serialNumber(logger)
		for t := from.UTC().Add(step - 1).Truncate(step); !t.After(to); t = t.Add(step) {
			w := weatherAt(h.options.Seed, logger, t)
			for _, s := range stationSeries {
				o := s.observation(logger, base, w)
				if value, found := h.corrected.Load(keyOf(o)); found {
					o.Value = value.(float64)
				}
				if !yield(o) {
					return
				}
			}
		}
	}
}

// correctedKey tells a measurement from all others.
type correctedKey struct {
	logger, sensor, measurementType, dataType string
	at                                        int64
}

func keyOf(o Observation) correctedKey {
	return correctedKey{o.Logger, o.Sensor, o.MeasurementType, o.DataType, o.Time.Unix()}
}

// Correct gives a measurement, one of [Handler.Observations], another value from now
// on, as the vendor does when a sensor's calibration is entered late.
func (h *Handler) Correct(o Observation, value float64) { h.corrected.Store(keyOf(o), value) }

// serialNumber is the number that the sensors of a logger are counted from.
func serialNumber(logger string) int64 {
	if n, err := strconv.ParseInt(logger, 10, 64); err == nil && n > 0 && n < math.MaxInt32 {
		return n
	}
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(logger))
	return int64(hash.Sum32())
}

func sensorSerial(base int64, s series) string {
	return strconv.FormatInt(base*10+int64(s.sensor), 10) + "-" + s.channel
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	request := &Request{At: time.Now()}
	defer func() { h.record(*request) }()
	if r.URL.Path != "/v1/data" {
		request.Status = writeError(w, http.StatusNotFound, "RES-001", "there is no resource "+r.URL.Path)
		return
	}
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		request.Status = writeError(w, http.StatusMethodNotAllowed, "VAL-008", "use GET")
		return
	}
	token, found := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !found {
		request.Status = writeError(w, http.StatusUnauthorized, "ATH-001", "a bearer token is required")
		return
	}
	if subtle.ConstantTimeCompare([]byte(token), []byte(h.options.Token)) == 0 {
		request.Status = writeError(w, http.StatusForbidden, "ATH-001", "the token is not valid")
		return
	}
	if !h.admit(w.Header()) {
		request.Status = writeError(w, http.StatusTooManyRequests, "SYS-002", "too many requests")
		return
	}
	if failure, ok := h.nextFailure(); ok {
		request.Status = failure.write(w)
		return
	}
	if code, message := request.parse(r.URL.Query(), h.options.Loggers); code != "" {
		request.Status = writeError(w, http.StatusBadRequest, code, message)
		return
	}
	h.writeData(w, request)
}

// parse reads the parameters, and returns an error code and message, or "".
func (q *Request) parse(values url.Values, known []string) (code, message string) {
	for _, name := range []string{"loggers", "start_date_time", "end_date_time"} {
		if values.Get(name) == "" {
			return "VAL-001", "the parameter " + name + " is required"
		}
	}
	q.Loggers = strings.Split(values.Get("loggers"), ",")
	for _, logger := range q.Loggers {
		if !slices.Contains(known, logger) {
			return "VAL-002", "the logger " + strconv.Quote(logger) + " is not in this account"
		}
	}
	var err error
	if q.Start, err = time.Parse(time.DateTime, values.Get("start_date_time")); err != nil {
		return "VAL-003", "start_date_time is not of the form yyyy-MM-dd HH:mm:ss"
	}
	if q.End, err = time.Parse(time.DateTime, values.Get("end_date_time")); err != nil {
		return "VAL-004", "end_date_time is not of the form yyyy-MM-dd HH:mm:ss"
	}
	if q.End.Before(q.Start) {
		return "VAL-005", "end_date_time is before start_date_time"
	}
	return "", ""
}

// admit counts a request, and reports whether it is within the rate limit.
func (h *Handler) admit(header http.Header) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	window := h.options.RateWindow
	if now.Sub(h.windowStart) >= window {
		h.windowStart, h.windowUsed = now, 0
	}
	admitted := h.windowUsed < h.options.RateLimit
	if admitted {
		h.windowUsed++
	}
	limit := strconv.Itoa(h.options.RateLimit)
	seconds := func(d time.Duration) string { return strconv.Itoa(int(math.Ceil(d.Seconds()))) }
	header.Set("RateLimit-Policy", limit+";w="+seconds(window))
	header.Set("RateLimit-Limit", limit)
	header.Set("RateLimit-Remaining", strconv.Itoa(h.options.RateLimit-h.windowUsed))
	header.Set("RateLimit-Reset", seconds(h.windowStart.Add(window).Sub(now)))
	return admitted
}

func (h *Handler) record(request Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count++
	h.log = append(h.log, request)
	if len(h.log) > logLength {
		h.log = slices.Delete(h.log, 0, len(h.log)-logLength)
	}
}
