// RUN: infer-shapes
// What the If hands over is known from its branches only.
graph @g(%c: bool[], %x: f32[2]) -> (%z) {
  %y = If(%c, %x) region @then(%a: f32[2]) -> (%p) {
    %p = Relu(%a)
  } region @else(%b: f32[2]) -> (%q) {
    %q = Neg(%b)
  }
  %z = Add(%y, %x)
}
// EXPECT:
graph @g(%c: bool[], %x: f32[2]) -> (%z) {
  %y: f32[2] = If(%c, %x) region @then(%a: f32[2]) -> (%p) {
    %p: f32[2] = Relu(%a)
  } region @else(%b: f32[2]) -> (%q) {
    %q: f32[2] = Neg(%b)
  }
  %z: f32[2] = Add(%y, %x)
}
