//go:build race

package process

const racing = true
