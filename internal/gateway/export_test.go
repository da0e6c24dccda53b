package gateway

import "time"

// Listable is listable, for tables of tools that no SDK would send.
var Listable = listable

// Attendance is attendance, whose clock no test could wait for.
type Attendance struct{ attendance }

// Begin is begin, and so on.
func (a *Attendance) Begin(timeout time.Duration, over func()) { a.begin(timeout, over) }

// Enter is enter.
func (a *Attendance) Enter() { a.enter() }

// Leave is leave.
func (a *Attendance) Leave() { a.leave() }

// End is end.
func (a *Attendance) End() { a.end() }
