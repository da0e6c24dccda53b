package gateway

// Listable is listable, for tables of tools that no SDK would send.
var Listable = listable
