//go:build !linux

package main

import "errors"

func endAll() error { return errors.New("-end is for Linux") }
