// RUN: merge-common
// Other attributes, other order where it counts, other types of constants, negative zero.
graph @g(%x: f32[2,2], %z: f32[2,2]) -> (%y) {
  %zero: const f32[1] = [0.0]
  %minus: const f32[1] = [-0.0]
  %a: f32[2,2] = Sub(%x, %z)
  %b: f32[2,2] = Sub(%z, %x)
  %c: f32[2,2] = Softmax(%a) {axis = 0}
  %d: f32[2,2] = Softmax(%a) {axis = 1}
  %e: f32[2,2] = Div(%c, %b)
  %f: f32[2,2] = Add(%d, %zero)
  %g: f32[2,2] = Add(%d, %minus)
  %h: f32[2,2] = Mul(%e, %f)
  %y: f32[2,2] = Add(%h, %g)
}
// EXPECT:
graph @g(%x: f32[2,2], %z: f32[2,2]) -> (%y) {
  %zero: const f32[1] = [0.0]
  %minus: const f32[1] = [-0.0]
  %a: f32[2,2] = Sub(%x, %z)
  %b: f32[2,2] = Sub(%z, %x)
  %c: f32[2,2] = Softmax(%a) {axis = 0}
  %d: f32[2,2] = Softmax(%a) {axis = 1}
  %e: f32[2,2] = Div(%c, %b)
  %f: f32[2,2] = Add(%d, %zero)
  %g: f32[2,2] = Add(%d, %minus)
  %h: f32[2,2] = Mul(%e, %f)
  %y: f32[2,2] = Add(%h, %g)
}
