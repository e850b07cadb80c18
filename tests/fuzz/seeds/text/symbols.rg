graph @s(%x: f32[N,K,"batch size"]) -> () where K in 0..100 data, N in 1..32, "batch size" in 2.. {
}
