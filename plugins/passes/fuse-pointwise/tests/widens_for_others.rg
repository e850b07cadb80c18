// RUN: fuse-pointwise
// %t reads the bytes as they are: floats of them are made where they are read, not beside them.
graph @g(%x: f32[4,6]) -> (%e, %t) {
  %a: f32[4,6] = Relu(%x)
  %q: i8[4,6] = Cast(%a) {to = 3}
  %d: f32[4,6] = Cast(%q) {to = 1}
  %e: f32[4,6] = Neg(%d)
  %t: i8[6,4] = Transpose(%q) {perm = [1, 0]}
}
// EXPECT:
graph @g(%x: f32[4,6]) -> (%e, %t) {
  %q: i8[4,6] = regie.Pointwise(%x) region @body(%0: f32[]) -> (%2) {
    %1: f32[] = Relu(%0)
    %2: i8[] = Cast(%1) {to = 3}
  }
  %e: f32[4,6] = regie.Pointwise(%q) region @body(%3: i8[]) -> (%5) {
    %4: f32[] = Cast(%3) {to = 1}
    %5: f32[] = Neg(%4)
  }
  %t: i8[6,4] = Transpose(%q) {perm = [1, 0]}
}
