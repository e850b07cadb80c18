// RUN: remove-dead
// %b reads %a and nobody reads %b; the constant goes with its reader.
graph @g(%x: f32[2]) -> (%y) {
  %k: const f32[2] = [1.0, 2.0]
  %a = Relu(%x)
  %b = Add(%a, %k)
  %y = Neg(%x)
}
// EXPECT:
graph @g(%x: f32[2]) -> (%y) {
  %y = Neg(%x)
}
