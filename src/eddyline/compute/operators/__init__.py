"""The incremental operators; each is ``eddyline.compute.stream.Operator``.

======================================================================  =============================================
``MfpOperator(name, input, mfp, output, context)``                      operators.mfp
``FlatMapOperator(name, input, node, output, context)``                 operators.flat_map
``UnionOperator(name, inputs, output, context)``                        operators.stateless
``NegateOperator(name, input, output, context)``                        operators.stateless
``ConstantOperator(name, node, output, context)``                       operators.constant
``FlattenOperator(name, input: ArrangedStream, output, context)``       operators.stateless: arranged edge to stream
``ArrangeOperator(name, input, layout, output: ArrangedOutput, context)``   operators.arrange
``JoinOperator(name, left: ArrangedStream, right: ArrangedStream, node, output, context)``   operators.join
``ReduceOperator(name, input, node, output, context)``                  operators.reduce: accumulable
``BasicReduceOperator(name, input, node, output, context)``             operators.basic_reduce
``DistinctOperator(name, input, node, output, context)``                operators.distinct
``ThresholdOperator(name, input, node, output, context)``               operators.distinct
``TopKOperator(name, input, node, output, context)``                    operators.top_k
======================================================================  =============================================

``input`` is a ``Stream`` and ``output`` an ``Output`` where nothing else is said.  Rows must already be on the worker
that owns their key: Arrange and Reduce by the hash of the key columns, TopK by that of the group columns, Distinct
and Threshold by that of the whole row.  ``operators.arrange.new_arrangement(layout, context)`` makes the traces;
``ArrangeOperator.meet`` tells it of the other side of the only join that reads it (``operators.partner``).
"""
