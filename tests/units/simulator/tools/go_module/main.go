// The smallest tool there is; its version is set by the linker, as the real ones' are.
package main

var version = "unset"

func main() { println("hello", version) }
