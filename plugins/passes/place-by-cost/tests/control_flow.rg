// RUN: place-by-cost
// An If runs on the host, whatever is in its branches; what it hands over lies there.
graph @g(%c: bool[], %x: f32[2,4]) -> (%y) {
  %y: f32[2,4] = If(%c, %x) region @then(%a: f32[2,4]) -> (%p) {
    %p: f32[2,4] = Softmax(%a) {axis = 1}
  } region @else(%b: f32[2,4]) -> (%q) {
    %q: f32[2,4] = Neg(%b)
  }
}
// EXPECT:
graph @g(%c: bool[] @space(0), %x: f32[2,4] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %y: f32[2,4] @space(0) = If(%c, %x) @engine("cpu") region @then(%a: f32[2,4] @space(0)) -> (%p) {
    %p: f32[2,4] @space(1) = Softmax(%a) {axis = 1} @engine("null")
  } region @else(%b: f32[2,4] @space(0)) -> (%q) {
    %q: f32[2,4] @space(0) = Neg(%b) @engine("cpu")
  }
}
