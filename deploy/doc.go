// Package deploy holds what operators install against what the programs know: the manifests of
// Kubernetes and the units of systemd. It is a module of its own for the types of Kubernetes.
package deploy
