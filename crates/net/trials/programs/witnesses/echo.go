// An echo server and its client in Go, whose network calls no library sees.
// Usage: echo serve PORT | echo ask PORT CONNECTIONS MESSAGES
package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func serve(port string) {
	listener, err := net.Listen("tcp", "127.0.0.1:"+port)
	must(err)
	for {
		conn, err := listener.Accept()
		must(err)
		go func() {
			// As long as copies can be made by io.Copy, Go may use splice(2).
			io.Copy(conn, conn)
			conn.Close()
		}()
	}
}

func ask(port string, me, messages int, done chan<- error) {
	conn, err := net.Dial("tcp", "127.0.0.1:"+port)
	if err != nil {
		done <- err
		return
	}
	defer conn.Close()
	for at := 0; at < messages; at++ {
		data := bytes.Repeat([]byte{byte(me + at)}, 1+(at*7919)%20000)
		if _, err := conn.Write(data); err != nil {
			done <- err
			return
		}
		back := make([]byte, len(data))
		if _, err := io.ReadFull(conn, back); err != nil {
			done <- err
			return
		}
		if !bytes.Equal(back, data) {
			done <- fmt.Errorf("message %d came back wrong", at)
			return
		}
	}
	done <- nil
}

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2])
	}
	connections, messages := number(os.Args[3]), number(os.Args[4])
	done := make(chan error)
	for me := 0; me < connections; me++ {
		go ask(os.Args[2], me, messages, done)
	}
	for me := 0; me < connections; me++ {
		must(<-done)
	}
	fmt.Println("checked", connections*messages)
}
