// RUN: place-by-priority, insert-copies
// What a branch captures stays where it is and is copied by who needs it; what it hands over goes to the host.
graph @g(%c: bool[], %x: f32[2,4]) -> (%y) {
  %s: f32[2,4] = Softmax(%x) {axis = 1}
  %y: f32[2,4] = If(%c, %s) region @then(%a: f32[2,4]) -> (%p) {
    %p: f32[2,4] = LogSoftmax(%a) {axis = 1}
  } region @else(%b: f32[2,4]) -> (%q) {
    %q: f32[2,4] = Neg(%b)
  }
}
// EXPECT:
graph @g(%c: bool[] @space(0), %x: f32[2,4] @space(0)) -> (%y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %x.null0: f32[2,4] @space(1) = regie.Copy(%x) @name("x to null0") @engine("null")
  %s: f32[2,4] @space(1) = Softmax(%x.null0) {axis = 1} @engine("null")
  %y: f32[2,4] @space(0) = If(%c, %s) @engine("cpu") region @then(%a: f32[2,4] @space(1)) -> (%p.host) {
    %p: f32[2,4] @space(1) = LogSoftmax(%a) {axis = 1} @engine("null")
    %p.host: f32[2,4] @space(0) = regie.Copy(%p) @name("p to host") @engine("null")
  } region @else(%b: f32[2,4] @space(1)) -> (%q) {
    %b.host: f32[2,4] @space(0) = regie.Copy(%b) @name("b to host") @engine("null")
    %q: f32[2,4] @space(0) = Neg(%b.host) @engine("cpu")
  }
}
