// RUN: fold-constants
// 1+1, 2+2; times 1 and 2.
graph @g(%x: f32[2]) -> (%y) {
  %a: const f32[2] = [1.0, 2.0]
  %b: f32[2] = Add(%a, %a)
  %c: f32[2] = Mul(%b, %a)
  %y: f32[2] = Add(%x, %c)
}
// EXPECT:
graph @g(%x: f32[2]) -> (%y) {
  %c: const f32[2] = [2.0, 8.0]
  %y: f32[2] = Add(%x, %c)
}
