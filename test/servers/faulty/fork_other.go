//go:build !linux

package main

// forkBomb is for containers, which run Linux.
func forkBomb() { spin() }
