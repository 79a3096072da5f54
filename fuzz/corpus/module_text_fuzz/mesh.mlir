module @m attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["data"=4, "model"=2], device_ids=[0, 1]>
  // a "comment
  %0 = f() loc("text \" sdy.mesh [\"x\"=3]")
}
