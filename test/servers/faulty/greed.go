package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// eat touches memory until there is none.
func eat() {
	var eaten [][]byte
	for {
		block := make([]byte, 4<<20)
		for i := 0; i < len(block); i += 4096 {
			block[i] = 1
		}
		eaten = append(eaten, block)
		if len(eaten) > 1<<20 {
			return
		}
	}
}

func spin() {
	for i := 0; i >= 0; i = (i + 1) & 0xff {
	}
}

func fillTmp(s *server, m message) {
	block := make([]byte, 1<<20)
	file, err := os.CreateTemp("/tmp", "filled")
	if err != nil {
		s.text(m, err.Error())
		return
	}
	written := 0
	for err == nil {
		var n int
		n, err = file.Write(block)
		written += n
	}
	s.text(m, fmt.Sprintf("%d MB: %s", written>>20, reason(err)))
	_ = file.Close()
	_ = os.Remove(file.Name())
}

func openFiles(s *server, m message) {
	var opened []*os.File
	var err error
	for len(opened) < 100_000 {
		var file *os.File
		if file, err = os.Open(os.DevNull); err != nil {
			break
		}
		opened = append(opened, file)
	}
	s.text(m, strconv.Itoa(len(opened))+" files: "+reason(err))
	for _, file := range opened {
		_ = file.Close()
	}
}

func reason(err error) string {
	var number syscall.Errno
	if errors.As(err, &number) {
		return number.Error()
	}
	return "no error"
}
