package page

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect/v2"

	"github.com/google/uuid"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	jobsv1 "github.com/dendrascience/dendra-jobs/proto/dendra/jobs/v1"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// oneShot is the mode of jobs that run once.
const oneShot = "one_shot"

// newPath is the address of the form of a new job of a type. From is the job whose values it
// begins with, if any. Without a mode it is one-shot, or else one that the type has.
func newPath(jobType, mode, from string) string {
	values := url.Values{"type": {jobType}, "mode": {mode}}
	if from != "" {
		values.Set("from", from)
	}
	return "/new?" + values.Encode()
}

// mayCreate reports whether a role may make jobs.
func mayCreate(role verbs.Role) bool { return role >= verbs.CreateJob.Role }

// typeRow is a job type of which there can be a new job.
type typeRow struct {
	*jobsv1.JobType
	// Modes are the words of its modes, with the addresses of their forms.
	Modes []field
}

// formView is the form of a new job.
type formView struct {
	form *jobsfile.Form
	Type *jobsv1.JobType
	Mode string
	// Uploads says that the jobs are about a file, which people can upload.
	Uploads bool
	// From is the job that the values are from.
	From string
	// Modes are the words of the other modes, with the addresses of their forms.
	Modes []field
	// Prefix is what the id begins with. Key is the rest of it.
	Prefix string
	Key    input
	// Settings are those of the mode, Spec the parameters, and Options the rest.
	Settings, Spec, Options []input
	// OptionsOpen says that something stands in an option.
	OptionsOpen bool
	Reason      string
	// Problems are those of no field. Wrong is how many there are in all.
	Problems []string
	Wrong    int
	// RequestID has a form that is sent twice make one job.
	RequestID string
	// Preview is the job as a file would declare it, once there is nothing wrong with it.
	Preview string
}

// input is a field with what was typed.
type input struct {
	jobsfile.Field
	Value   string
	Problem string
	// Inputs are those of a table.
	Inputs []input
}

// newJob shows the form of a new job, or the types to choose from.
func (p *Page) newJob(r *http.Request) (*document, error) {
	values := r.URL.Query()
	types, err := p.jobTypes(r)
	if err != nil {
		return nil, err
	}
	if values.Get("type") == "" {
		return &document{Title: "New job", View: "types", Data: rowsOf(types)}, nil
	}
	form, err := newForm(types, values)
	if err != nil {
		return nil, err
	}
	typed := map[string]string{}
	if form.From != "" {
		if typed, err = p.valuesOf(r.Context(), form); err != nil {
			return nil, err
		}
	}
	form.RequestID = uuid.NewString()
	form.Uploads = p.takesUploads(form.Type)
	form.fill(func(path string) string { return typed[path] }, nil)
	return form.document(), nil
}

// jobTypes are those of which whoever asks may make jobs.
func (p *Page) jobTypes(r *http.Request) ([]*jobsv1.JobType, error) {
	if role := p.role(r); !mayCreate(role) {
		return nil, connect.NewError(connect.CodePermissionDenied, "a new job needs the role "+verbs.CreateJob.Role.String()+", and yours is "+role.String())
	}
	answer, err := p.API.Workers.ListJobTypes(r.Context(), &jobsv1.ListJobTypesRequest{})
	return answer.GetJobTypes(), err
}

func rowsOf(types []*jobsv1.JobType) []typeRow {
	rows := make([]typeRow, len(types))
	for i, t := range types {
		rows[i] = typeRow{t, modesOf(t, "", "")}
	}
	return rows
}

// modesOf are the modes of a type but one.
func modesOf(t *jobsv1.JobType, but, from string) []field {
	var modes []field
	for _, mode := range t.GetModes() {
		if mode != but {
			modes = append(modes, field{modeWord(mode), newPath(t.GetName(), mode, from)})
		}
	}
	return modes
}

// modeWord is the name of a mode for people.
func modeWord(mode string) string { return strings.ReplaceAll(mode, "_", "-") }

// newForm is a form without values.
func newForm(types []*jobsv1.JobType, values url.Values) (*formView, error) {
	name, mode := values.Get("type"), values.Get("mode")
	at := slices.IndexFunc(types, func(t *jobsv1.JobType) bool { return t.GetName() == name })
	if at < 0 {
		return nil, connect.NewError(connect.CodeNotFound, "there is no job type "+name+" of a live worker")
	}
	t := types[at]
	if mode == "" { // A run of its own, if the type has such jobs.
		mode = oneShot
		if modes := t.GetModes(); len(modes) > 0 && !slices.Contains(modes, oneShot) {
			mode = modes[0]
		}
	}
	if !slices.Contains(t.GetModes(), mode) {
		return nil, connect.NewError(connect.CodeNotFound, "jobs of type "+name+" are never "+modeWord(mode))
	}
	schema, err := t.GetSpecSchema().MarshalJSON()
	if err != nil {
		return nil, err
	}
	asked, err := jobsfile.NewForm(name, mode, schema)
	if err != nil {
		return nil, err
	}
	form := &formView{form: asked, Type: t, Mode: mode, From: values.Get("from"), RequestID: values.Get("request_id"), Reason: values.Get("reason")}
	form.Modes = modesOf(t, mode, form.From)
	form.Prefix = jobsfile.IDOf(name, "")
	form.Key = input{Field: jobsfile.Field{
		Path: jobsfile.KeyPath, Key: "key", Kind: jobsfile.FieldText, Required: true,
		Help: "the end of its id: a-z or 0-9 first, then also '.', '_' and '-'; at most 64", Example: "meadow",
	}}
	return form, nil
}

// takesUploads reports whether jobs of a type are about a file of the S3 store, by its bucket,
// key, ETag and organization.
func (p *Page) takesUploads(t *jobsv1.JobType) bool {
	keys := t.GetSpecSchema().GetFields()["properties"].GetStructValue().GetFields()
	has := func(key string) bool { return keys[key] != nil }
	return p.StoreOrigin != "" && has("bucket") && has("key") && has("etag") && has("organization")
}

// valuesOf are the values of the job that a form begins with, and a key that is new.
func (p *Page) valuesOf(ctx context.Context, form *formView) (map[string]string, error) {
	answer, err := p.API.Jobs.GetJob(ctx, &jobsv1.GetJobRequest{Id: form.From})
	if err != nil {
		return nil, err
	}
	j, problems := api.Definition(answer.GetJob())
	if len(problems) > 0 {
		return nil, connect.NewError(connect.CodeFailedPrecondition, "job "+form.From+": "+problems[0].String())
	}
	typed, err := form.form.Write(j)
	if err != nil {
		return nil, err
	}
	_, key, _ := strings.Cut(form.From, ".")
	const stamped = "-20060102-150405"
	typed[jobsfile.KeyPath] = key[:min(len(key), 64-len(stamped))] + time.Now().UTC().Format(stamped)
	typed["description"] = form.From + " with other values"
	return typed, nil
}

// fill puts what was typed into the form, each problem beside its field.
func (f *formView) fill(typed func(path string) string, problems map[string]string) {
	f.Wrong = len(problems)
	take := func(path string) string {
		text := problems[path]
		delete(problems, path)
		return text
	}
	var inputs func(fields []jobsfile.Field) []input
	inputs = func(fields []jobsfile.Field) []input {
		var list []input
		for _, of := range fields {
			list = append(list, input{of, typed(of.Path), take(of.Path), inputs(of.Fields)})
		}
		return list
	}
	f.Key.Value, f.Key.Problem = typed(jobsfile.KeyPath), take(jobsfile.KeyPath)
	all := inputs(f.form.Fields)
	f.Settings, f.Spec, f.Options = all[0].Inputs, all[1].Inputs, all[2:]
	if all[1].Kind != jobsfile.FieldTable {
		f.Spec = all[1:2] // The type says nothing of its spec.
	}
	f.OptionsOpen = slices.ContainsFunc(f.Options, input.touched)
	for _, path := range slices.Sorted(maps.Keys(problems)) {
		f.Problems = append(f.Problems, strings.TrimPrefix(path+": ", ": ")+problems[path])
	}
	for _, of := range all[:2] { // Tables whose problems have no field.
		if of.Problem != "" && of.Kind == jobsfile.FieldTable {
			f.Problems = append(f.Problems, of.Key+": "+of.Problem)
		}
	}
}

// touched reports whether there is something in an input, or wrong with it.
func (i input) touched() bool {
	return i.Value != "" || i.Problem != "" || slices.ContainsFunc(i.Inputs, input.touched)
}

func (f *formView) document() *document {
	title := "New job"
	if f.From != "" {
		title = "Run " + f.From + " with other values"
	}
	return &document{Title: title, View: "form", Data: f}
}

// createJob takes the form: it shows what would be made, and makes it once that was seen.
func (p *Page) createJob(w http.ResponseWriter, r *http.Request) {
	values, ok := p.form(w, r)
	if !ok {
		return
	}
	types, err := p.jobTypes(r)
	if err != nil {
		status, doc := p.failed(r, err)
		p.write(w, r, status, doc)
		return
	}
	form, err := newForm(types, values)
	if err != nil {
		status, doc := p.failed(r, err)
		p.write(w, r, status, doc)
		return
	}
	form.Uploads = p.takesUploads(form.Type)
	request, problems := form.request(values.Get)
	status := http.StatusBadRequest
	if len(problems) == 0 {
		status, problems = p.preview(r.Context(), form, request)
	}
	seen := strings.ReplaceAll(values.Get("seen"), "\r\n", "\n") // Browsers send lines so.
	if len(problems) == 0 && values.Get("step") == "create" && seen == form.Preview {
		request.ValidateOnly = false
		if _, err = p.API.Jobs.CreateJob(r.Context(), request); err == nil {
			http.Redirect(w, r, jobPath(request.GetJob().GetId()), http.StatusSeeOther) //nolint:gosec // It is a path of this page.
			return
		}
		status, problems = errorStatus(err), form.problemsOf(err)
	}
	if len(problems) > 0 {
		form.Preview = ""
	}
	form.fill(values.Get, problems)
	p.write(w, r, status, form.document())
}

// request is the request that a form asks for. The problems are by the paths of fields.
func (f *formView) request(typed func(path string) string) (*jobsv1.CreateJobRequest, map[string]string) {
	j, problems := f.form.Read(typed)
	found := map[string]string{}
	for _, problem := range problems {
		f.note(found, problem.Path, problem.Message)
	}
	return &jobsv1.CreateJobRequest{Job: api.JobMessage(j), RequestId: f.RequestID, ValidateOnly: true, Reason: f.Reason}, found
}

// note notes a problem beside its field: the first one of each. What lies within the value of a
// field is named.
func (f *formView) note(found map[string]string, path []string, text string) {
	whole := strings.Join(path, ".")
	place := cmp.Or(f.form.Place(path), whole)
	if rest := strings.TrimPrefix(strings.TrimPrefix(whole, place), "."); rest != "" {
		text = rest + ": " + text
	}
	found[place] = cmp.Or(found[place], text)
}

// preview has the server say what it would do.
func (p *Page) preview(ctx context.Context, form *formView, request *jobsv1.CreateJobRequest) (status int, problems map[string]string) {
	answer, err := p.API.Jobs.CreateJob(ctx, request)
	if err != nil {
		return errorStatus(err), form.problemsOf(err)
	}
	form.Preview, err = definition(answer.GetJob())
	if err != nil {
		form.Preview += "\n" // No file can declare it: it is shown as JSON.
	}
	return http.StatusOK, nil
}

// problemsOf are what an error of the API complains of, by the paths of fields.
func (f *formView) problemsOf(err error) map[string]string {
	problems := map[string]string{}
	for _, v := range api.ViolationsOf(err) {
		path := strings.TrimPrefix(strings.TrimPrefix(v.GetField(), "job."), "options.")
		if path == "id" {
			path = jobsfile.KeyPath
		}
		f.note(problems, strings.Split(path, "."), v.GetDescription())
	}
	switch {
	case len(problems) > 0:
	case connect.CodeOf(err) == connect.CodeAlreadyExists:
		problems[jobsfile.KeyPath] = sentence(err)
	default:
		problems[""] = sentence(err)
	}
	return problems
}

// ModeWord is the mode for people.
func (f *formView) ModeWord() string { return modeWord(f.Mode) }

// Create is what the button that makes the job says.
func (f *formView) Create() string {
	if f.Mode == oneShot {
		return "Create and run"
	}
	return "Create"
}

// Takes says which values an input takes.
func (i input) Takes() string {
	var parts []string
	if i.Type != "" {
		parts = append(parts, strings.ReplaceAll(i.Type, "`", ""))
	}
	switch i.Kind {
	case jobsfile.FieldLines:
		parts = append(parts, "one per line")
	case jobsfile.FieldJSON:
		parts = append(parts, "as JSON")
	}
	if i.Default != "" {
		parts = append(parts, "default "+i.Default)
	}
	if i.Example != "" && i.Example != i.Default {
		parts = append(parts, "such as "+i.Example)
	}
	return strings.Join(parts, "; ")
}

// HasLines says that a field of one line would lose something.
func (i input) HasLines() bool { return strings.Contains(i.Value, "\n") }

// Rows is how high the field of a text is.
func (i input) Rows() int { return min(max(strings.Count(i.Value, "\n")+1, 3), 20) }
