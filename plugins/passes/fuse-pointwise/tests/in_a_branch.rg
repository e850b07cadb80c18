// RUN: fuse-pointwise
// Inside of a branch; what the branch hands out is a result. Nothing joins across its border.
graph @g(%c: bool[], %x: f32[3]) -> (%y) {
  %r: f32[3] = Relu(%x)
  %y: f32[3] = If(%c, %r) region @then(%a: f32[3]) -> (%q) {
    %p: f32[3] = Exp(%a)
    %q: f32[3] = Neg(%p)
  } region @else(%b: f32[3]) -> (%t) {
    %t: f32[3] = Neg(%b)
  }
}
// EXPECT:
graph @g(%c: bool[], %x: f32[3]) -> (%y) {
  %r: f32[3] = Relu(%x)
  %y: f32[3] = If(%c, %r) region @then(%a: f32[3]) -> (%q) {
    %q: f32[3] = regie.Pointwise(%a) region @body(%0: f32[]) -> (%2) {
      %1: f32[] = Exp(%0)
      %2: f32[] = Neg(%1)
    }
  } region @else(%b: f32[3]) -> (%t) {
    %t: f32[3] = Neg(%b)
  }
}
