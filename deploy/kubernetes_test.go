package deploy_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/intstr"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// overlays are the kustomizations that people build.
var overlays = []string{"base", "overlays/production", "overlays/next-build", "overlays/worker-controller"}

// fromOutside are Secrets that people make.
var fromOutside = map[string]bool{
	"credentials": true, "secrets-backend": true, "secrets-extract": true, "secrets-load": true, "secrets-serve": true,
	"variables-backend": true, "variables-extract": true, "variables-load": true, "variables-serve": true, "variables-setup": true,
}

// workload is what makes pods.
type workload struct {
	name     string
	selector labels.Selector
	replicas *int32
	pod      corev1.PodTemplateSpec
}

// manifests are the objects of a kustomization.
type manifests struct {
	workloads map[string]workload
	data      map[string]map[string]string // of ConfigMaps
	secrets   map[string]bool
	services  []corev1.Service
	budgets   []policyv1.PodDisruptionBudget
	policies  []networkingv1.NetworkPolicy
	scaled    []scaledObject
	accounts  map[string]bool
	refs      map[string]bool // Connections to Temporal
	wanted    []workerDeployment
}

// build makes the objects of a kustomization, and decodes each strictly into its type.
func build(t *testing.T, overlay string) *manifests {
	t.Helper()
	made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), filepath.Join("kubernetes", overlay))
	require.NoError(t, err, overlay)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, appsv1.AddToScheme, batchv1.AddToScheme, networkingv1.AddToScheme, policyv1.AddToScheme} {
		require.NoError(t, add(scheme))
	}
	strict := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	m := &manifests{workloads: map[string]workload{}, data: map[string]map[string]string{}, secrets: map[string]bool{}, accounts: map[string]bool{}, refs: map[string]bool{}}
	for _, resource := range made.Resources() {
		text, err := resource.AsYAML()
		require.NoError(t, err)
		where := overlay + ": " + resource.GetKind() + " " + resource.GetName()
		if m.addCustom(t, where, resource.GetKind(), text) {
			continue
		}
		object, _, err := strict.Decode(text, nil, nil)
		require.NoError(t, err, where)
		m.add(t, where, object)
	}
	return m
}

func (m *manifests) add(t *testing.T, where string, object runtime.Object) {
	t.Helper()
	switch object := object.(type) {
	case *appsv1.Deployment:
		selector, err := metav1.LabelSelectorAsSelector(object.Spec.Selector)
		require.NoError(t, err)
		m.workloads[object.Name] = workload{where, selector, object.Spec.Replicas, object.Spec.Template}
	case *batchv1.Job:
		m.workloads[object.Name] = workload{where, nil, nil, object.Spec.Template}
	case *corev1.ConfigMap:
		m.data[object.Name] = object.Data
	case *corev1.Secret:
		m.secrets[object.Name] = true
		require.True(t, fromOutside[object.Name], where)
	case *corev1.Service:
		m.services = append(m.services, *object)
	case *policyv1.PodDisruptionBudget:
		m.budgets = append(m.budgets, *object)
	case *networkingv1.NetworkPolicy:
		m.policies = append(m.policies, *object)
	case *corev1.ServiceAccount:
		m.accounts[object.Name] = true
	case *corev1.Namespace:
		require.Equal(t, string(psa.LevelRestricted), object.Labels[psa.EnforceLevelLabel])
	default:
		require.Failf(t, "a kind that no test looks at", "%s", where)
	}
}

// addCustom decodes what is no type of Kubernetes itself.
func (m *manifests) addCustom(t *testing.T, where, kind string, text []byte) bool {
	t.Helper()
	switch kind {
	case "ScaledObject":
		var s scaledObject
		decode(t, where, text, &s)
		m.scaled = append(m.scaled, s)
	case "Connection":
		var c connection
		decode(t, where, text, &c)
		require.Regexp(t, `^[a-zA-Z0-9.-]+:[0-9]+$`, c.Spec.HostPort, where)
		m.refs[c.Name] = true
	case "WorkerDeployment":
		var w workerDeployment
		decode(t, where, text, &w)
		m.wanted = append(m.wanted, w)
		m.workloads[w.Name] = workload{where, labels.SelectorFromSet(w.Spec.Template.Labels), w.Spec.Replicas, w.Spec.Template}
	default:
		return false
	}
	return true
}

// TestManifests holds what each kustomization makes against what the programs know.
func TestManifests(t *testing.T) {
	t.Parallel()
	for _, overlay := range overlays {
		t.Run(overlay, func(t *testing.T) {
			t.Parallel()
			m := build(t, overlay)
			outside := overlay == "overlays/next-build" // What the base has is there.
			if outside {
				m.borrow(build(t, "base"))
			}
			for _, w := range m.workloads {
				m.checkWorkload(t, w)
			}
			for _, s := range m.scaled {
				m.checkScaled(t, s)
			}
			for _, w := range m.wanted {
				w.check(t, m)
			}
		})
	}
}

// borrow adds what pods of another kustomization name.
func (m *manifests) borrow(from *manifests) {
	for name, data := range from.data {
		if _, own := m.data[name]; !own {
			m.data[name] = data
		}
	}
	m.accounts, m.policies = from.accounts, from.policies
}

func (m *manifests) checkWorkload(t *testing.T, w workload) {
	t.Helper()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	require.NoError(t, err)
	for _, result := range evaluator.EvaluatePod(psa.LevelVersion{Level: psa.LevelRestricted, Version: psa.LatestVersion()}, &w.pod.ObjectMeta, &w.pod.Spec) {
		require.True(t, result.Allowed, "%s: %s %s", w.name, result.ForbiddenReason, result.ForbiddenDetail)
	}
	require.True(t, m.accounts[w.pod.Spec.ServiceAccountName], "%s: its account is there", w.name)
	require.False(t, *w.pod.Spec.AutomountServiceAccountToken, w.name)
	for _, volume := range w.pod.Spec.Volumes {
		switch {
		case volume.Secret != nil:
			require.True(t, fromOutside[volume.Secret.SecretName], "%s: Secret %s", w.name, volume.Secret.SecretName)
			require.EqualValues(t, 0o440, *volume.Secret.DefaultMode, w.name)
			require.NotNil(t, w.pod.Spec.SecurityContext.FSGroup, "%s: its user can read the files", w.name)
		case volume.ConfigMap != nil:
			require.Contains(t, m.data, volume.ConfigMap.Name, w.name)
		default:
			require.Failf(t, "a volume that no test looks at", "%s: %s", w.name, volume.Name)
		}
	}
	ports := map[int32]bool{}
	for _, c := range w.pod.Spec.Containers {
		m.checkContainer(t, w, c)
		for _, port := range c.Ports {
			require.False(t, ports[port.ContainerPort], "%s: a port of the pod is that of one container", w.name)
			ports[port.ContainerPort] = true
			m.checkReachable(t, w.name, port.ContainerPort)
		}
	}
}

func (m *manifests) checkContainer(t *testing.T, w workload, c corev1.Container) {
	t.Helper()
	where := w.name + ": " + c.Name
	started := command{where, append(append([]string{}, c.Command...), c.Args...)}
	started.check(t)
	m.environment(t, where, c)
	require.Positive(t, c.Resources.Requests.Cpu().MilliValue(), where)
	require.Positive(t, c.Resources.Limits.Memory().Cmp(*c.Resources.Requests.Memory()), where)
	for _, mount := range c.VolumeMounts {
		require.True(t, mount.ReadOnly, where)
	}
	if started.name() == "starter setup" {
		return
	}
	address := started.flag("health-address")
	if !started.isWorker() {
		address = started.flag("listen")
	}
	for path, probe := range map[string]*corev1.Probe{"/livez": c.LivenessProbe, "/readyz": c.ReadinessProbe} {
		require.NotNil(t, probe, where)
		require.Equal(t, path, probe.HTTPGet.Path, where)
		port := intstr.IntOrString{}
		for _, named := range c.Ports {
			if named.Name == probe.HTTPGet.Port.StrVal {
				port = intstr.FromInt32(named.ContainerPort)
			}
		}
		require.Equal(t, address, ":"+port.String(), "%s: %s is asked where the program listens", where, path)
	}
	stop := started.stopsWithin(t)
	if c.Lifecycle != nil {
		stop += time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
	}
	require.Greater(t, time.Duration(*w.pod.Spec.TerminationGracePeriodSeconds)*time.Second, stop, where)
}

// environment checks the variables of a container, and gives those whose values are known.
func (m *manifests) environment(t *testing.T, where string, c corev1.Container) map[string]string {
	t.Helper()
	known := map[string]string{}
	for _, from := range c.EnvFrom {
		if from.SecretRef != nil {
			require.True(t, fromOutside[from.SecretRef.Name], "%s: Secret %s", where, from.SecretRef.Name)
			continue
		}
		require.Contains(t, m.data, from.ConfigMapRef.Name, where)
		for name, value := range m.data[from.ConfigMapRef.Name] {
			checkVariable(t, where, name)
			known[name] = value
		}
	}
	helpers := map[string]bool{}
	for _, variable := range c.Env {
		if variable.ValueFrom != nil { // It only makes the value of another one.
			helpers[variable.Name] = true
			continue
		}
		checkVariable(t, where, variable.Name)
		known[variable.Name] = variable.Value
		if _, rest, uses := strings.Cut(variable.Value, "$("); uses {
			name, _, _ := strings.Cut(rest, ")")
			require.True(t, helpers[name], "%s: %s is there before %s", where, name, variable.Name)
		}
	}
	return known
}

// checkReachable: the policy lets calls of a port in.
func (m *manifests) checkReachable(t *testing.T, where string, port int32) {
	t.Helper()
	for _, p := range m.policies {
		for _, rule := range p.Spec.Ingress {
			for _, open := range rule.Ports {
				last := open.Port.IntVal
				if open.EndPort != nil {
					last = *open.EndPort
				}
				if open.Port.IntVal <= port && port <= last {
					return
				}
			}
		}
	}
	require.Failf(t, "no NetworkPolicy lets the port in", "%s: %d", where, port)
}

// TestPodsOfTwoBuilds: where a second build runs beside the first one, a pod belongs to one
// Deployment, and to the one disruption budget that its eviction needs.
func TestPodsOfTwoBuilds(t *testing.T) {
	t.Parallel()
	first, second := build(t, "overlays/production"), build(t, "overlays/next-build")
	budgets := append(first.budgets, second.budgets...)
	for _, builds := range []*manifests{first, second} {
		for name, w := range builds.workloads {
			if w.selector == nil {
				continue // A Job.
			}
			pod := labels.Set(w.pod.Labels)
			var owners, kept []string
			for _, others := range []*manifests{first, second} {
				for other, o := range others.workloads {
					if o.selector != nil && o.selector.Matches(pod) {
						owners = append(owners, other)
					}
				}
			}
			for _, budget := range budgets {
				selector, err := metav1.LabelSelectorAsSelector(budget.Spec.Selector)
				require.NoError(t, err)
				if selector.Matches(pod) {
					kept = append(kept, budget.Name)
				}
			}
			require.Equal(t, []string{name}, owners)
			require.Len(t, kept, 1, name)
			for _, service := range first.services {
				serves := labels.SelectorFromSet(service.Spec.Selector).Matches(pod)
				require.Equal(t, service.Name == name, serves, "Service %s, pods of %s", service.Name, name)
			}
		}
	}
}
