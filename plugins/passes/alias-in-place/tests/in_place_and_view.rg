// RUN: place-by-priority, insert-copies, alias-in-place
// %b over %a, %c a view of %b, and %d over those bytes, which are %a's. The output has memory of its own, and so has what is
// computed from the input.
graph @g(%x: f32[2,2]) -> (%y) {
  %a: f32[2,2] = Relu(%x)
  %b: f32[2,2] = Abs(%a)
  %c: f32[2,2] = Identity(%b)
  %d: f32[2,2] = Exp(%c)
  %y: f32[2,2] = Neg(%d)
}
// EXPECT:
graph @g(%x: f32[2,2] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[2,2] @space(0) = Relu(%x) @engine("cpu")
  %b: f32[2,2] @space(0) @alias(%a, 0) = Abs(%a) @engine("cpu")
  %c: f32[2,2] @space(0) @alias(%b, 0) = Identity(%b) @engine("cpu")
  %d: f32[2,2] @space(0) @alias(%a, 0) = Exp(%c) @engine("cpu")
  %y: f32[2,2] @space(0) = Neg(%d) @engine("cpu")
}
