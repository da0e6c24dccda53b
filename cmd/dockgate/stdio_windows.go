package main

import "os"

// stdio returns standard input and output.
func stdio() (in, out *os.File) { return os.Stdin, os.Stdout }
