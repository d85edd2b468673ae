// Package process makes pictures in processes of their own: what strangers upload is decoded
// there, not in the worker.
//
// A [Pool] starts a program, by default the one that it is part of, with two arguments, and speaks to
// it through standard input and output. The program's main calls [Main] first. The child has an empty
// environment and the root folder. It loads its engine, and confines itself before it reads: no network, no files but
// its pipes, and limits of memory and of processor time that the system enforces. A file that
// breaks a decoder ends a child and fails one picture.
//
// On Linux all of it holds, with kernels that have seccomp. Elsewhere there are the limits of
// time alone, and what Go's own memory limit does.
package process
