// RUN: place-by-priority, insert-copies
// The second branch has no node to put a copy beside, so what it hands over is brought to the host before the If; there the
// first branch finds it.
graph @g(%c: bool[], %x: f32[2,4]) -> (%y) {
  %s: f32[2,4] = Softmax(%x) {axis = 1}
  %y: f32[2,4] = If(%c, %s) region @then(%a: f32[2,4]) -> (%p) {
    %p: f32[2,4] = Neg(%a)
  } region @else(%b: f32[2,4]) -> (%b) {
  }
}
// EXPECT:
graph @g(%c: bool[] @space(0), %x: f32[2,4] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %x.null0: f32[2,4] @space(1) = regie.Copy(%x) @name("x to null0") @engine("null")
  %s: f32[2,4] @space(1) = Softmax(%x.null0) {axis = 1} @engine("null")
  %s.host: f32[2,4] @space(0) = regie.Copy(%s) @name("s to host") @engine("null")
  %y: f32[2,4] @space(0) = If(%c, %s.host) @engine("cpu") region @then(%a: f32[2,4] @space(0)) -> (%p) {
    %p: f32[2,4] @space(0) = Neg(%a) @engine("cpu")
  } region @else(%b: f32[2,4] @space(0)) -> (%b) {
  }
}
