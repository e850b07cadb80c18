// RUN: fuse-pointwise
// A chain with a scalar constant, a vector for each channel and a tensor of the whole shape; symbolic batch.
graph @g(%x: f32[N,3,4,5], %scale: f32[3,1,1], %y: f32[N,3,4,5]) -> (%out) where N in 1..8 {
  %half: const f32[1] = [0.5]
  %a: f32[N,3,4,5] = Mul(%x, %scale) @name("scale") @from("scale (Mul)")
  %b: f32[N,3,4,5] = Add(%a, %half) @name("shift") @from("shift (Add)")
  %c: f32[N,3,4,5] = Sigmoid(%b) @name("gate") @from("gate (Sigmoid)")
  %out: f32[N,3,4,5] = Mul(%c, %y) @name("mix") @from("mix (Mul)")
}
// EXPECT:
graph @g(%x: f32[N,3,4,5], %scale: f32[3,1,1], %y: f32[N,3,4,5]) -> (%out) where N in 1..8 {
  %out: f32[N,3,4,5] = regie.Pointwise(%x, %scale, %y) @name("mix") @from("gate (Sigmoid)", "mix (Mul)", "scale (Mul)", "shift (Add)") region @body(%0: f32[], %1: f32[], %2: f32[]) -> (%6) {
    %half: const f32[] = 0.5
    %3: f32[] = Mul(%0, %1) @name("scale") @from("scale (Mul)")
    %4: f32[] = Add(%3, %half) @name("shift") @from("shift (Add)")
    %5: f32[] = Sigmoid(%4) @name("gate") @from("gate (Sigmoid)")
    %6: f32[] = Mul(%5, %2) @name("mix") @from("mix (Mul)")
  }
}
