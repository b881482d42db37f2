// SPDX-License-Identifier: LGPL-2.1-or-later

// Counts a command: usage: count EVENT COMMAND [ARG...]. With github.com/godbus/dbus (golang-github-godbus-dbus-dev).
package main

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/godbus/dbus/v5"
)

const name, manager, counter = "org.perfalloc1", "org.perfalloc1.Manager.", "org.perfalloc1.Counter."

func die(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "count:", err)
		os.Exit(1)
	}
}

// open opens a counter of this process and what it starts from now on: it is free of proof, and inherits.
func open(bus *dbus.Conn, event string) dbus.BusObject {
	var paths []dbus.ObjectPath
	options := map[string]dbus.Variant{"descendants": dbus.MakeVariant(true), "start": dbus.MakeVariant(false)}
	call := bus.Object(name, "/org/perfalloc1").Call(manager+"OpenCounters", 0, []string{event}, options)
	die(call.Store(&paths))
	return bus.Object(name, paths[0])
}

// hold waits until monitors have given way; the counters are held until the lease is closed.
func hold(bus *dbus.Conn) *os.File {
	var path dbus.ObjectPath
	var lease dbus.UnixFD
	options := map[string]dbus.Variant{"wait_usec": dbus.MakeVariant(uint64(60e6))}
	die(bus.Object(name, "/org/perfalloc1").Call(manager+"Hold", 0, "count", options).Store(&path, &lease))
	die(bus.Object(name, path).Call("org.perfalloc1.Hold.Wait", 0).Err)
	return os.NewFile(uintptr(lease), "lease")
}

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: count EVENT COMMAND [ARG...]")
		os.Exit(2)
	}
	bus, err := dbus.ConnectSystemBus()
	die(err)
	defer bus.Close()
	lease := hold(bus)
	defer lease.Close()
	c := open(bus, os.Args[1])
	die(c.Call(counter+"Start", 0).Err)

	command := exec.Command(os.Args[2], os.Args[3:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	status := command.Run()

	var value, enabled, running, estimate uint64
	var quality string
	die(c.Call(counter+"Read", 0).Store(&value, &enabled, &running, &estimate, &quality))
	fmt.Fprintf(os.Stderr, "%d %s (%s)\n", estimate, os.Args[1], quality)
	die(status)
}
