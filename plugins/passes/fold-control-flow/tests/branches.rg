// RUN: infer-shapes, fold-control-flow, remove-dead
// The second condition is computed: it stays.
graph @g(%x: f32[2], %p: bool[]) -> (%y, %z) {
  %yes: const bool[] = true
  %no: const bool[] = false
  %a = If(%yes, %x) region @then_branch(%c: f32[2]) -> (%r) {
    %two: const f32[] = 2.0
    %r = Mul(%c, %two)
  } region @else_branch(%d: f32[2]) -> (%d) {
  }
  %b = If(%no, %a) region @then_branch(%e: f32[2]) -> (%s) {
    %s = Neg(%e)
  } region @else_branch(%f: f32[2]) -> (%f) {
  }
  %y = If(%p, %b) region @then_branch(%h: f32[2]) -> (%u) {
    %u = Neg(%h)
  } region @else_branch(%i: f32[2]) -> (%i) {
  }
  %z = Relu(%b)
}
// EXPECT:
graph @g(%x: f32[2], %p: bool[]) -> (%y, %z) {
  %two: const f32[] = 2.0
  %r: f32[2] = Mul(%x, %two)
  %y: f32[2] = If(%p, %r) region @then_branch(%h: f32[2]) -> (%u) {
    %u: f32[2] = Neg(%h)
  } region @else_branch(%i: f32[2]) -> (%i) {
  }
  %z: f32[2] = Relu(%r)
}
