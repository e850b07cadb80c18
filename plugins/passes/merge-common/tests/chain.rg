// RUN: merge-common
// Equal nodes of equal nodes, in one run; sums in either order.
graph @g(%x: f32[N,3], %z: f32[N,3]) -> (%y) {
  %one: const f32[1] = [1.0]
  %uno: const f32[1] = [1.0]
  %a: f32[N,3] = Add(%x, %one)
  %b: f32[N,3] = Add(%uno, %x)
  %c: f32[N,3] = Relu(%a)
  %d: f32[N,3] = Relu(%b)
  %e: f32[N,3] = Sub(%c, %z)
  %f: f32[N,3] = Sub(%d, %z)
  %y: f32[N,3] = Mul(%e, %f)
}
// EXPECT:
graph @g(%x: f32[N,3], %z: f32[N,3]) -> (%y) {
  %one: const f32[1] = [1.0]
  %a: f32[N,3] = Add(%x, %one)
  %c: f32[N,3] = Relu(%a)
  %e: f32[N,3] = Sub(%c, %z)
  %y: f32[N,3] = Mul(%e, %e)
}
