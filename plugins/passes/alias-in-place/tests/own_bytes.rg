// RUN: place-by-priority, insert-copies, alias-in-place
// Inputs, constants, outputs, what a branch captures and what it hands over keep their bytes to themselves.
graph @g(%c: bool[], %x: f32[2,4]) -> (%r, %n, %y) {
  %k: const f32[2,4] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
  %r: f32[2,4] = Relu(%x)
  %n: f32[2,4] = Neg(%r)
  %q: f32[2,4] = Abs(%k)
  %y: f32[2,4] = If(%c, %q) region @then(%a: f32[2,4]) -> (%p) {
    %o: f32[2,4] = Neg(%a)
    %p: f32[2,4] = Abs(%o)
  } region @else(%b: f32[2,4]) -> (%b) {
  }
}
// EXPECT:
graph @g(%c: bool[] @space(0), %x: f32[2,4] @space(0)) -> (%r, %n, %y) on "null" = "null0" 1 space 1, "cpu" = "cpu" 0 space 0 {
  %k: const f32[2,4] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
  %r: f32[2,4] @space(0) = Relu(%x) @engine("cpu")
  %n: f32[2,4] @space(0) = Neg(%r) @engine("cpu")
  %q: f32[2,4] @space(0) = Abs(%k) @engine("cpu")
  %y: f32[2,4] @space(0) = If(%c, %q) @engine("cpu") region @then(%a: f32[2,4] @space(0)) -> (%p) {
    %o: f32[2,4] @space(0) = Neg(%a) @engine("cpu")
    %p: f32[2,4] @space(0) = Abs(%o) @engine("cpu")
  } region @else(%b: f32[2,4] @space(0)) -> (%b) {
  }
}
