import gradviz as gv
from gradviz.ops.shapes.copying import MemoryFormat


def test_a_clone_lies_in_memory_as_its_original_does():
    x = gv.zeros(2, 3).T

    assert x.clone().array.strides == x.array.strides
    assert x.clone(memory_format=MemoryFormat.CONTIGUOUS).is_contiguous()
    assert x.contiguous().is_contiguous()


def test_a_clone_of_an_expanded_tensor_has_each_element_for_itself():
    x = gv.zeros(3).expand(2, 3).clone()

    assert x.is_contiguous()
    assert x.array.flags.writeable


def test_a_complex_gradient_of_a_real_original_is_cut_without_a_warning():
    x = gv.tensor([3.0, -1.0], requires_grad=True)

    x.to(gv.complex128).sum().abs().backward()

    assert x.grad.tolist() == [1.0, 1.0]
