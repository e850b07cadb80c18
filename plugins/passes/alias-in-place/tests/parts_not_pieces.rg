// RUN: place-by-priority, insert-copies, alias-in-place
// Must not share: rows of a batch of two are apart; a part of 4 bytes leaves the next one unaligned; a slice with a step.
graph @g(%x: f32[2,16,2,2], %s: f32[1], %l: f32[32]) -> (%y, %z, %q) {
  %a: f32[2,16,2,2] = Exp(%x)
  %b: f32[2,16,2,2] = Neg(%x)
  %c: f32[2,32,2,2] = Concat(%a, %b) {axis = 1}
  %y: f32[2,32,2,2] = Tanh(%c)
  %d: f32[1] = Exp(%s)
  %e: f32[32] = Exp(%l)
  %f: f32[33] = Concat(%d, %e) {axis = 0}
  %z: f32[33] = Tanh(%f)
  %starts: const i64[1] = [0]
  %ends: const i64[1] = [32]
  %axes: const i64[1] = [0]
  %steps: const i64[1] = [2]
  %p: f32[16] = Slice(%e, %starts, %ends, %axes, %steps)
  %q: f32[16] = Tanh(%p)
}
// EXPECT:
graph @g(%x: f32[2,16,2,2] @space(0), %s: f32[1] @space(0), %l: f32[32] @space(0)) -> (%y, %z, %q) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %starts: const i64[1] = [0]
  %ends: const i64[1] = [32]
  %axes: const i64[1] = [0]
  %steps: const i64[1] = [2]
  %a: f32[2,16,2,2] @space(0) = Exp(%x) @engine("cpu")
  %b: f32[2,16,2,2] @space(0) = Neg(%x) @engine("cpu")
  %c: f32[2,32,2,2] @space(0) = Concat(%a, %b) {axis = 1} @engine("cpu")
  %y: f32[2,32,2,2] @space(0) = Tanh(%c) @engine("cpu")
  %d: f32[1] @space(0) = Exp(%s) @engine("cpu")
  %e: f32[32] @space(0) = Exp(%l) @engine("cpu")
  %f: f32[33] @space(0) = Concat(%d, %e) {axis = 0} @engine("cpu")
  %z: f32[33] @space(0) = Tanh(%f) @engine("cpu")
  %p: f32[16] @space(0) = Slice(%e, %starts, %ends, %axes, %steps) @engine("cpu")
  %q: f32[16] @space(0) = Tanh(%p) @engine("cpu")
}
