package deploy_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// scaledObject has the fields of KEDA's ScaledObject (keda.sh/v1alpha1) that an overlay may use.
type scaledObject struct {
	metav1.TypeMeta `json:",inline"`
	Metadata        metav1.ObjectMeta `json:"metadata"`
	Spec            struct {
		ScaleTargetRef  named     `json:"scaleTargetRef"`
		MinReplicaCount int32     `json:"minReplicaCount"`
		MaxReplicaCount int32     `json:"maxReplicaCount"`
		Triggers        []trigger `json:"triggers"`
	} `json:"spec"`
}

type named struct {
	Name string `json:"name"`
}

type trigger struct {
	Type     string            `json:"type"`
	Metadata map[string]string `json:"metadata"`
}

// temporalTrigger are the settings of KEDA's trigger temporal, since 2.21.
var temporalTrigger = []string{
	"endpoint", "namespace", "taskQueue", "queueTypes", "targetQueueSize", "activationTargetQueueSize", "workerDeploymentName",
	"workerDeploymentBuildId", "includeRunningWorkflowCount", "workflowTaskQueueForCount", "minConnectTimeout", "unsafeSsl", "tlsServerName",
}

// checkScaled: KEDA finds its target, whose number it alone sets, and asks for the backlog of
// the target's own build.
func (m *manifests) checkScaled(t *testing.T, s scaledObject) {
	t.Helper()
	require.Equal(t, "keda.sh/v1alpha1", s.APIVersion)
	require.Contains(t, m.workloads, s.Spec.ScaleTargetRef.Name)
	target := m.workloads[s.Spec.ScaleTargetRef.Name]
	require.Nil(t, target.replicas, target.name)
	require.Less(t, s.Spec.MinReplicaCount, s.Spec.MaxReplicaCount)
	container := target.pod.Spec.Containers[0]
	variables := m.environment(t, target.name, container)
	for _, trigger := range s.Spec.Triggers {
		require.Equal(t, "temporal", trigger.Type)
		given := map[string]string{}
		for name, value := range trigger.Metadata {
			if setting, from := strings.CutSuffix(name, "FromEnv"); from {
				require.NotEmpty(t, variables[value], "%s: %s", target.name, value)
				name, value = setting, variables[value]
			}
			require.Contains(t, temporalTrigger, name, target.name)
			given[name] = value
		}
		require.Equal(t, command{line: container.Command}.name(), given["taskQueue"])
		require.Equal(t, variables["TEMPORAL_WORKER_BUILD_ID"], given["workerDeploymentBuildId"], "KEDA wants it with the deployment's name")
		require.Equal(t, "activity", given["queueTypes"])
	}
}

// connection is the Connection of Temporal's worker controller (temporal.io/v1alpha1).
type connection struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		HostPort string `json:"hostPort"`
		TLS      *struct {
			ServerName string `json:"serverName"`
		} `json:"tls"`
		MutualTLSSecretRef *named                    `json:"mutualTLSSecretRef"`
		APIKeySecretRef    *corev1.SecretKeySelector `json:"apiKeySecretRef"`
	} `json:"spec"`
}

// workerDeployment has the fields of the WorkerDeployment of the same API that an overlay may
// use.
type workerDeployment struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Replicas *int32                 `json:"replicas"`
		Template corev1.PodTemplateSpec `json:"template"`
		Rollout  struct {
			Strategy string `json:"strategy"`
			Steps    []struct {
				RampPercentage int             `json:"rampPercentage"`
				PauseDuration  metav1.Duration `json:"pauseDuration"`
			} `json:"steps"`
		} `json:"rollout"`
		Sunset struct {
			ScaledownDelay *metav1.Duration `json:"scaledownDelay"`
			DeleteDelay    *metav1.Duration `json:"deleteDelay"`
		} `json:"sunset"`
		WorkerOptions struct {
			ConnectionRef     named  `json:"connectionRef"`
			TemporalNamespace string `json:"temporalNamespace"`
		} `json:"workerOptions"`
	} `json:"spec"`
}

// decode reads YAML as Kubernetes does: what has no field, or another case, is an error.
func decode(t *testing.T, where string, text []byte, into any) {
	t.Helper()
	document, err := yaml.YAMLToJSONStrict(text)
	require.NoError(t, err, where)
	unknown, err := json.UnmarshalStrict(document, into)
	require.NoError(t, err, where)
	require.Empty(t, unknown, where)
}

// check holds it against the rules of its definition, and looks for the workers.
func (w workerDeployment) check(t *testing.T, m *manifests) {
	t.Helper()
	require.Equal(t, "temporal.io/v1alpha1", w.APIVersion)
	require.True(t, m.refs[w.Spec.WorkerOptions.ConnectionRef.Name], "its Connection is there")
	require.NotEmpty(t, w.Spec.WorkerOptions.TemporalNamespace)
	require.Equal(t, "Progressive", w.Spec.Rollout.Strategy)
	last := 0
	for _, step := range w.Spec.Rollout.Steps {
		require.Greater(t, step.RampPercentage, last)
		require.Less(t, step.RampPercentage, 100)
		require.GreaterOrEqual(t, step.PauseDuration.Seconds(), 30.0)
		last = step.RampPercentage
	}
	require.NotZero(t, last, "Progressive has steps")
	var programs []string
	for _, c := range w.Spec.Template.Spec.Containers {
		programs = append(programs, command{line: c.Command}.name())
		for _, variable := range c.Env {
			require.NotContains(t, []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_DEPLOYMENT_NAME", "TEMPORAL_WORKER_BUILD_ID"}, variable.Name, "the controller sets it")
		}
	}
	slices.Sort(programs)
	require.Equal(t, []string{"backend", "extract", "load"}, programs, "all that poll the task queue of queues are in one deployment")
	for _, other := range []string{"backend", "extract", "load"} {
		require.NotContains(t, m.workloads, other, "the controller makes it")
	}
}
