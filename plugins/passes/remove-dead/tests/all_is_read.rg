// RUN: remove-dead
// A node that another one must run after stays, though nobody reads it; so does an output that is read by nobody else.
graph @g(%x: f32[2]) -> (%y, %r) {
  %r: f32[2] = Relu(%x)
  %first: f32[2] = Abs(%x)
  %y: f32[2] = Neg(%r) @after(%first)
}
// EXPECT:
graph @g(%x: f32[2]) -> (%y, %r) {
  %r: f32[2] = Relu(%x)
  %first: f32[2] = Abs(%x)
  %y: f32[2] = Neg(%r) @after(%first)
}
