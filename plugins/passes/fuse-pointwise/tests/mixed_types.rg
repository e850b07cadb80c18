// RUN: fuse-pointwise
// Comparisons, logic, selection, conversion; two chains that meet; an absent operand.
graph @g(%x: f32[4,6], %n: i64[6], %flag: bool[4,1]) -> (%out) {
  %zero: const f32[] = [0.0]
  %top: const f32[] = [0.75]
  %f: f32[6] = Cast(%n) {to = 1}
  %low: bool[4,6] = Less(%x, %zero)
  %pick: bool[4,6] = Or(%low, %flag)
  %held: f32[4,6] = Clip(%x, _, %top)
  %out: f32[4,6] = Where(%pick, %held, %f)
}
// EXPECT:
