// RUN: place-by-priority, insert-copies, alias-in-place
// Must not share: %c is an output, %a is one, %x is an input, %k a constant; cut from an input, or to be an output.
graph @g(%x: f32[1,16,2,2]) -> (%c, %a, %t, %u, %v, %q) {
  %k: weight f32[1,16,2,2]
  %halves: const i64[2] = [8, 8]
  %e: f32[1,16,2,2] = Exp(%x)
  %n: f32[1,16,2,2] = Neg(%e)
  %c: f32[1,32,2,2] = Concat(%e, %n) {axis = 1}
  %a: f32[1,16,2,2] = Tanh(%n)
  %d: f32[1,32,2,2] = Concat(%a, %n) {axis = 1}
  %t: f32[1,32,2,2] = Tanh(%d)
  %f: f32[1,32,2,2] = Concat(%x, %n) {axis = 1}
  %u: f32[1,32,2,2] = Tanh(%f)
  %g: f32[1,32,2,2] = Concat(%k, %n) {axis = 1}
  %v: f32[1,32,2,2] = Tanh(%g)
  %o: f32[1,8,2,2], %p: f32[1,8,2,2] = Split(%x, %halves) {axis = 1}
  %q: f32[1,8,2,2] = Add(%o, %p)
}
// EXPECT:
graph @g(%x: f32[1,16,2,2] @space(0), %k: weight f32[1,16,2,2]) -> (%c, %a, %t, %u, %v, %q) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %halves: const i64[2] = [8, 8]
  %e: f32[1,16,2,2] @space(0) = Exp(%x) @engine("cpu")
  %n: f32[1,16,2,2] @space(0) = Neg(%e) @engine("cpu")
  %c: f32[1,32,2,2] @space(0) = Concat(%e, %n) {axis = 1} @engine("cpu")
  %a: f32[1,16,2,2] @space(0) = Tanh(%n) @engine("cpu")
  %d: f32[1,32,2,2] @space(0) = Concat(%a, %n) {axis = 1} @engine("cpu")
  %t: f32[1,32,2,2] @space(0) = Tanh(%d) @engine("cpu")
  %f: f32[1,32,2,2] @space(0) = Concat(%x, %n) {axis = 1} @engine("cpu")
  %u: f32[1,32,2,2] @space(0) = Tanh(%f) @engine("cpu")
  %g: f32[1,32,2,2] @space(0) = Concat(%k, %n) {axis = 1} @engine("cpu")
  %v: f32[1,32,2,2] @space(0) = Tanh(%g) @engine("cpu")
  %o: f32[1,8,2,2] @space(0), %p: f32[1,8,2,2] @space(0) = Split(%x, %halves) {axis = 1} @engine("cpu")
  %q: f32[1,8,2,2] @space(0) = Add(%o, %p) @engine("cpu")
}
