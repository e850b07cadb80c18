graph @t(%a: f32[*], %b: ?[2,?], %c: seq(f32[2]), %d: opt(i64[]), %e: opt(seq(f16[*])), %f: f32[1,4,8,8,16]:NC1HWC0<16>/NCHW, %g: f32[2]:opaque<3>, %h: f32[2]:ND/NHWC, %i: f32[2*N+1,floordiv(N+1, 2)]) -> () where N in 3.. {
}
