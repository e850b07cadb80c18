// RUN: place-by-priority, insert-copies, alias-in-place
// %b cannot be written over %a, which the view %v still shows to %y; the last reader of both may be.
graph @g(%x: f32[2,2]) -> (%y) {
  %a: f32[2,2] = Relu(%x)
  %v: f32[2,2] = Identity(%a)
  %b: f32[2,2] = Abs(%a)
  %s: f32[2,2] = Add(%v, %b)
  %y: f32[2,2] = Neg(%s)
}
// EXPECT:
graph @g(%x: f32[2,2] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %a: f32[2,2] @space(0) = Relu(%x) @engine("cpu")
  %v: f32[2,2] @space(0) @alias(%a, 0) = Identity(%a) @engine("cpu")
  %b: f32[2,2] @space(0) = Abs(%a) @engine("cpu")
  %s: f32[2,2] @space(0) @alias(%a, 0) = Add(%v, %b) @engine("cpu")
  %y: f32[2,2] @space(0) = Neg(%s) @engine("cpu")
}
