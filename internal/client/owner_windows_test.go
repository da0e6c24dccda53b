package client_test

import "io/fs"

func owner(fs.FileInfo) string { return "" }
