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
